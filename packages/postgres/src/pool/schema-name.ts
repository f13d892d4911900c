import { badOption } from './place.ts';

/** A schema's name as it stands in SQL. Narrow: it also stands inside of functions' bodies and texts. */
export function quoteSchema(caller: string, schema: unknown): string {
  if (typeof schema === 'string' && /^[a-z_][a-z0-9_-]{0,62}$/i.test(schema)) return `"${schema}"`;
  throw badOption(
    `${caller}(): \`schema\` must be 1 to 63 letters, digits, "_" or "-", and begin with a letter or "_", ` +
      `not ${JSON.stringify(schema)}.`,
  );
}
