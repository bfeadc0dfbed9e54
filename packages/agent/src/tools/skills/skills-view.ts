import type { SkillEditor, Skills } from '@concierge/tenant';

/** The tenant's skills, to read. */
export type SkillsView = Pick<Skills, 'load' | 'readFile' | 'list' | 'scan'>;

/** The tenant's skills, to change. */
export type SkillsEditing = Pick<
  SkillEditor,
  'text' | 'create' | 'update' | 'remove' | 'writeFile' | 'removeFile' | 'versions' | 'restore'
>;
