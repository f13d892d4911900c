import { badOption } from './place.ts';

/** PostgreSQL cuts longer identifiers off without a word. */
const LONGEST_IDENTIFIER = 63;

/** A schema's name as it stands in SQL. */
export function quoteSchema(caller: string, schema: unknown): string {
  const fits =
    typeof schema === 'string' &&
    schema !== '' &&
    !schema.includes('\0') &&
    Buffer.byteLength(schema) <= LONGEST_IDENTIFIER;
  if (!fits) {
    throw badOption(
      `${caller}(): \`schema\` must be the name of a schema, 1 to ${LONGEST_IDENTIFIER} bytes, not ${String(schema)}.`,
    );
  }
  return `"${schema.replaceAll('"', '""')}"`;
}
