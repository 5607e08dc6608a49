// The text of a list of inputs, as the import command reads it.

/** Returns the text of a list: UTF-8, or UTF-16 with a byte order mark, which spreadsheets write. It throws if the text is neither. */
export async function textOf(list: Blob): Promise<string> {
  const bytes = await list.arrayBuffer();
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding, { fatal: true }).decode(bytes);
}

/** Returns the character that separates the cells of a table: the most frequent one of comma, semicolon and tab in its header. */
export function separatorOf(table: string): string {
  const header = table.replace(/"[^"]*"/g, '').split(/[\r\n]/, 1)[0] ?? '';
  const count = (character: string) => header.split(character).length;
  return [',', ';', '\t'].reduce((most, one) => (count(one) > count(most) ? one : most));
}

/** Converts a number of a place. It may have a decimal comma where commas do not separate cells. It throws if the cell is not a number. */
export function degrees(cell: string, separator: string): number {
  const text = separator === ',' || cell.includes('.') ? cell : cell.replace(',', '.');
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error(cell);
  return value;
}
