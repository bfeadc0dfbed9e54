export {
  appendLines,
  createFile,
  linkNew,
  removeOldTemporaries,
  replaceFile,
  sweepTemporaries,
  temporaryMaxAgeMs,
  temporaryName,
  temporaryPrefix,
  writeTemporary,
} from './atomic-file.ts';
export { etagMatches, etagOf } from './etag.ts';
export { FileWriter } from './file-writer.ts';
export { FolderSync } from './folder-sync.ts';
export { emptyFolder, enterIfThere, folderBytes, maxDepth, removeFolderIn, removeTree, sweepFolder } from './folder-tree.ts';
export { Generations } from './generations.ts';
export { parseJson, parseLines, readFreshIfThere, readIfThere, type Parsed } from './json-file.ts';
export { namesIn } from './names-in.ts';
export { foldName, invalidPath, nameProblem, parsePath } from './path-rules.ts';
export { HeldFolder, isPlainFile } from './path-walk.ts';
export { appendPlainFile, assertNoTwin, readPlainFile, readPlainHead, writePlainFile } from './plain-file.ts';
export { lstatIfThere, quickReaddir } from './quick-look.ts';
export { RecordFolder, type RecordFolderOptions } from './record-folder.ts';
export { signatureOf, StatCache } from './stat-cache.ts';
export { keepFolders, makeStoreFolder } from './store-folder.ts';
export { ignoreMissing, isSystemError } from './system-error.ts';
export { readContent, walkTree, type TreeContent, type TreeEntry } from './tree-walk.ts';
