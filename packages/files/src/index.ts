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
  type CreatedFiles,
} from './atomic-file.ts';
export { FileWriter } from './file-writer.ts';
export { FolderSync } from './folder-sync.ts';
export { emptyFolder, enterIfThere, folderBytes, maxDepth, removeFolderIn, removeTree, sweepFolder } from './folder-tree.ts';
export { parseJson, parseLines, readFreshIfThere, readIfThere, type Parsed } from './json-file.ts';
export { namesIn, lstatIfThere, quickReaddir } from './stat-policy.ts';
export { foldName, invalidPath, nameProblem, parsePath, FolderHandle, isPlainFile } from './path-walk.ts';
export { appendPlainFile, assertNoDuplicate, etagMatches, toEtag, readPlainFile, readPlainHead, writePlainFile } from './plain-file.ts';
export { RecordFolder, type RecordFolderOptions, keepFolders, makeStoreFolder } from './record-folder.ts';
export { SharedRun } from './shared-run.ts';
export { toStatSignature, StatCache } from './stat-cache.ts';
export { ignoreMissing, isSystemError } from './system-error.ts';
export { readContent, walkTree, type TreeContent, type TreeEntry } from './tree-walk.ts';
