export { safeFileName } from './file-name.ts';
export { sniffType } from './sniff.ts';
export { storeUpload, type LookedAtFile } from './store-upload.ts';
export { UploadTexts } from './upload-texts.ts';
