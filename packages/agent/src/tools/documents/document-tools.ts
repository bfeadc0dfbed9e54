import { AppError, type UploadRef } from '@concierge/contract';
import { z } from 'zod';
import { defineTool, ToolError } from '../tool.ts';
import type { FileAccess, TurnDocuments } from '../tool-context.ts';
import { Template, TemplateError } from './template.ts';
import { pageArguments, buildPage, matchHidden, wrapLines } from '../files/file-tools.ts';

const FOLDER = 'templates';
const LISTED_MAX = 100;
const TEMPLATE_MAX_CHARACTERS = 256 * 1024;
/** Tried in this order when the name has none. */
const endings = ['.md', '.txt', '.html'] as const;

export const renderTemplate = defineTool({
  name: 'render_template',
  domain: 'documents',
  cs: 'full',
  description: `Fills in a text template of the workspace (templates/<name>: Markdown, text or HTML) and answers with the finished text. Use it when there is a template for what is to be written, so that wording and form stay as the owner set them; pass the result on as it is.
Each template declares its variables; unknown, missing and wrong ones are refused and named all at once. An unknown name lists the templates there are, with what they take.`,
  schema: z.strictObject({
    name: z.string().min(1).max(1000).describe('Path under templates/, as in "offer.md" or "letters/offer"; an ending may be left out.'),
    variables: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Values by name; for "customer.name" an object in an object. Dates as in "2026-03-31".'),
  }),
  sideEffect: 'none',
  run: async ({ name, variables = {} }, { files }) => {
    const found = await findTemplate(files, name);
    if (found === undefined) throw new ToolError(`There is no template "${name}". ${await whatThereIs(files)}`);
    try {
      return new Template(found.path, found.text).render(variables);
    } catch (error) {
      if (error instanceof TemplateError) throw new ToolError(`${found.path} was not rendered:\n${error.message}`, { cause: error });
      throw error;
    }
  },
});

async function findTemplate(files: FileAccess, given: string): Promise<{ path: string; text: string } | undefined> {
  const name = given.startsWith(`${FOLDER}/`) ? given.slice(FOLDER.length + 1) : given;
  for (const ending of ['', ...endings]) {
    const path = `${FOLDER}/${name}${ending}`;
    const entry = await files.stat(path);
    if (entry?.kind !== 'file') continue;
    if (entry.size > TEMPLATE_MAX_CHARACTERS) throw new ToolError(`${path} is too large for a template.`);
    return { path, text: (await files.readText(path)).text };
  }
  return undefined;
}

async function whatThereIs(files: FileAccess): Promise<string> {
  const paths = await templatePaths(files);
  if (paths.length === 0) return 'There are none yet: templates are files under templates/.';
  const lines = await Promise.all(paths.slice(0, LISTED_MAX).map(async (path) => described(files, path)));
  const note = paths.length > LISTED_MAX ? `\n[and ${String(paths.length - LISTED_MAX)} more]` : '';
  return `There are:\n${lines.join('\n')}${note}`;
}

async function templatePaths(files: FileAccess): Promise<string[]> {
  try {
    const entries = await files.list(FOLDER, { recursive: true, limit: 1000, isHidden: matchHidden(FOLDER) });
    return entries.filter(({ kind }) => kind === 'file').map(({ path }) => path.slice(FOLDER.length + 1));
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return [];
    throw error;
  }
}

async function described(files: FileAccess, name: string): Promise<string> {
  try {
    const { text } = await files.readText(`${FOLDER}/${name}`);
    const { description, variables } = new Template(name, text);
    const takes = variables.length === 0 ? '' : ` (${variables.map((variable) => variable.name).join(', ')})`;
    return `- ${name}${takes}${description === '' ? '' : `: ${description}`}`;
  } catch (error) {
    if (error instanceof TemplateError || error instanceof AppError) return `- ${name}, which cannot be used: ${error.message}`;
    throw error;
  }
}

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
    return `${named(upload)}\n${buildPage(text, { name: upload.name, offset, limit })}`;
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
