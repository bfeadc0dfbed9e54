import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';

/** A tool's result as text for a model: what is no text is named, not shown. */
export function resultText(result: CallToolResult): string {
  const said = result.content.map((block) => blockText(block)).filter((text) => text !== '');
  if (said.length > 0) return said.join('\n\n');
  return result.structuredContent === undefined ? '' : JSON.stringify(result.structuredContent, undefined, 2);
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type} of type ${block.mimeType}, ${String(Math.floor((block.data.length * 3) / 4))} bytes: not shown]`;
    case 'resource_link':
      return `[resource ${block.name}: ${block.uri}]`;
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[resource ${block.resource.uri}: not text, not shown]`;
  }
}
