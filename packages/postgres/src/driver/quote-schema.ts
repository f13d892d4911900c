import { type OptionReader, text } from '@locks/core/backend';

const readName = text(
  '1 to 63 letters, digits, "_" or "-", and begin with a letter or "_"',
  /^[a-z_][a-z0-9_-]{0,62}$/i,
);

/** A schema's name, checked and quoted. Only few characters are allowed: it also stands inside function bodies and texts. */
export const quoteSchema: OptionReader<string> = (value, what) => `"${readName(value, what)}"`;
