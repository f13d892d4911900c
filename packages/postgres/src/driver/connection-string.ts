import { text } from '@locks/core/backend';

/** The URL of a database. An error message never shows it, because it may hold a password. */
export const readConnectionString = text(
  'a URL that begins with postgres://, as postgres://user@host:5432/database',
  /^postgres(?:ql)?:\/\//,
  true,
);
