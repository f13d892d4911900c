import type { Value } from './postgres-driver.ts';

/** A value as the text that PostgreSQL reads, for libraries whose own conversion depends on types. */
export function sqlText(value: Value): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Buffer) return `\\x${value.toString('hex')}`;
  if (!isArray(value)) return String(value);
  return `{${value.map((element) => (isArray(element) ? sqlText(element) : quoted(sqlText(element)))).join(',')}}`;
}

/** The text with its parameters as literals, for the simple protocol, which has none. */
export function withLiterals(text: string, values: readonly Value[]): string {
  return text.replace(/\$(\d+)/g, (_, number: string) => literal(sqlText(values[Number(number) - 1])));
}

/** A literal that neither `standard_conforming_strings` nor `backslash_quote` changes. */
function literal(text: string | null): string {
  return text === null ? 'NULL' : `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

function quoted(text: string | null): string {
  return text === null ? 'NULL' : `"${text.replace(/["\\]/g, String.raw`\$&`)}"`;
}

function isArray(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}
