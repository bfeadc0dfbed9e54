import type { UploadRef } from '@concierge/contract';
import { z } from 'zod';
import { pageArguments, pageOf, wrapLines } from '../page-lines.ts';
import { defineTool, ToolError } from '../tool.ts';
import type { TurnDocuments } from './turn-documents.ts';

const LISTED_MAX = 100;

const WHAT = `Text and PDF come as text, in pages with numbered lines: continue with offset. An image is shown to you in the message that follows the result.
What a user attached is in the user's message already, shortened when it is long: call this for the rest, or to look again at something from earlier. Without id it lists what is attached in this conversation.`;

export const viewAttachment = defineTool({
  name: 'view_attachment',
  domain: 'documents',
  cs: 'narrow',
  description: `Looks at an attachment: of this conversation, or any upload of this workspace whose id you have. ${WHAT}`,
  narrowDescription: `Looks at an attachment of this conversation. ${WHAT}`,
  schema: z.strictObject({
    id: z.string().min(1).max(100).optional().describe('Id of the attachment, as in "u_0123…". Default: list what there is.'),
    ...pageArguments,
  }),
  sideEffect: 'none',
  run: async ({ id, offset, limit }, { documents, show, signal }) => {
    if (id === undefined) return listing(await documents.list());
    const upload = await documents.find(id);
    if (upload === undefined) throw new ToolError(`There is no attachment "${id}". ${listing(await documents.list())}`);
    if (upload.type.startsWith('image/')) return showImage(upload, documents, show);
    const text = wrapLines((await documents.text(upload, signal)) ?? '');
    if (text.trim() === '')
      return `${named(upload)}: no text could be read from this file. It may be a scan; ask for the text or for a picture of it.`;
    return `${named(upload)}\n${pageOf(text, { name: upload.name, offset, limit })}`;
  },
});

function showImage(upload: UploadRef, documents: TurnDocuments, show: (image: UploadRef) => void): string {
  if (!documents.showsImages)
    return `${named(upload)}: the model of this conversation cannot see images. Ask the user to describe it, or to send its text.`;
  show(upload);
  return `${named(upload)}: the image is shown to you in the message after this.`;
}

function listing(uploads: readonly UploadRef[]): string {
  if (uploads.length === 0) return 'Nothing is attached in this conversation.';
  const note = uploads.length > LISTED_MAX ? `\n[and ${String(uploads.length - LISTED_MAX)} older ones]` : '';
  return `Attached in this conversation, oldest first:\n${uploads.slice(-LISTED_MAX).map(named).join('\n')}${note}`;
}

function named({ id, name, type, size }: UploadRef): string {
  return `${id}  "${name}"  ${type}, ${String(size)} bytes`;
}
