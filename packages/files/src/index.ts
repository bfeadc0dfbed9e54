export {
  appendLines,
  createFile,
  createFiles,
  linkNew,
  removeOldTemporaries,
  replaceFile,
  sweepTemporaries,
  temporaryMaxAgeMs,
  syncFile,
  writeTemporary,
  type CreatedFiles,
} from './atomic-file.ts';
export { runFileSteps, temporaryName, temporaryPrefix } from './file-steps.ts';
export { FolderSync, SharedRun } from './folder-sync.ts';
export { emptyFolder, enterIfThere, folderBytes, maxDepth, removeFolderIn, removeTree, sweepFolder } from './folder-tree.ts';
export { RecordChange, RecordChanges, type TellRecordChange } from './record-changes.ts';
export {
  quickReaddir,
  quickReadText,
  assertNotLater,
  LaterVersionError,
  parseAllLines,
  parseJson,
  parseStored,
  unlessLater,
  parseLines,
  readFreshIfThere,
  readIfThere,
  type Parsed,
  RecordFolder,
  type RecordFolderOptions,
  keepFolders,
  makeStoreFolder,
} from './record-folder.ts';
export { lstatIfThere, toStatSignature, StatCache } from './stat-cache.ts';
export { namesIn, ignoreMissing, isSystemError, toError } from './system-error.ts';
export { foldName, invalidPath, nameProblem, parsePath, FolderHandle, isPlainFile } from './path-walk.ts';
export { appendPlainFile, assertNoDuplicate, readPlainHead, writePlainFile } from './plain-file.ts';
export { readContent, walkTree, type TreeContent, type TreeEntry } from './tree-walk.ts';
export { readLog, recordMaxBytes, removeLog, WriteAheadLog, type LogRecord } from './write-ahead-log.ts';
