import type { OwnTool } from '../tool.ts';
import { renderTemplate } from './render-template.ts';
import { viewAttachment } from './view-attachment.ts';

export const documentsTools: readonly OwnTool[] = [viewAttachment, renderTemplate];
