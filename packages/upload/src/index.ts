export { safeFileName } from './file-name.ts';
export { PdfTexts } from './pdf-texts.ts';
export { sniffType } from './sniff.ts';
export { storeUpload, type LookedAtFile } from './store-upload.ts';
