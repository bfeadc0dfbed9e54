export { safeFileName, sniffType, storeUpload, type LookedAtFile } from './uploaded-file.ts';
export { UploadTexts } from './upload-texts.ts';
