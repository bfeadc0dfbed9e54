import { deflateSync } from 'node:zlib';

/** The smallest things of each kind that an upload may be. */
export const onePixelPng = Uint8Array.from(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'),
);

/** A PDF of one page that contains `text` (PDF 1.4, ISO 32000). */
export function smallPdf(text: string): Uint8Array<ArrayBuffer> {
  const content = `BT /F1 24 Tf 72 720 Td (${text}) Tj ET`;
  return buildPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${String(content.length)} >>\nstream\n${content}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]);
}

/**
 * A PDF of one kilobyte whose only page refers twenty times to one stream that was deflated twice: a reader that
 * decodes every reference takes 20 times `megabytes`.
 */
export function nestedFlatePdf(megabytes = 200): Uint8Array<ArrayBuffer> {
  const blanks = Buffer.alloc(megabytes * 1024 * 1024, ' ');
  const stream = deflateSync(deflateSync(blanks, { level: 9 }), { level: 9 }).toString('latin1');
  return buildPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents [${'4 0 R '.repeat(20)}] >>`,
    `<< /Length ${String(stream.length)} /Filter [/FlateDecode /FlateDecode] >>\nstream\n${stream}\nendstream`,
  ]);
}

function buildPdf(objects: readonly string[]): Uint8Array<ArrayBuffer> {
  let pdf = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const offset = pdf.length;
    pdf += `${String(index + 1)} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const size = String(objects.length + 1);
  pdf += `xref\n0 ${size}\n0000000000 65535 f \n${table}trailer << /Size ${size} /Root 1 0 R >>\nstartxref\n${String(pdf.lastIndexOf('xref'))}\n%%EOF\n`;
  return Uint8Array.from(Buffer.from(pdf, 'latin1'));
}
