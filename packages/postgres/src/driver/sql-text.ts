import type { Value } from './postgres-driver.ts';

/** A value as the text that PostgreSQL reads, for libraries whose own conversion depends on types. */
export function sqlText(value: Value): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Buffer) return `\\x${value.toString('hex')}`;
  if (!isArray(value)) return String(value);
  return `{${value.map((element) => (isArray(element) ? sqlText(element) : quoted(sqlText(element)))).join(',')}}`;
}

function quoted(text: string | null): string {
  return text === null ? 'NULL' : `"${text.replace(/["\\]/g, String.raw`\$&`)}"`;
}

function isArray(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}
