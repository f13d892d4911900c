import { badOption, checkPlace, type Place } from '../pool/place.ts';
import { quoteSchema } from '../pool/schema-name.ts';

const CALLER = 'postgresAdvisoryBackend';

/** How the advisory backend is set up, apart from where its database is. */
export interface AdvisorySettings {
  /**
   * The server ends a session of which it hears nothing for this long, and all its locks with it: what a frozen process
   * or a lost machine costs the others. Its holders are told after two thirds of it. 900 to 600 000 milliseconds.
   *
   * @defaultValue 15 000
   */
  readonly sessionTimeoutMs?: number;
  /**
   * How many connections this backend opens at most, 1 to 100. One carries any number of locks; each of the others
   * stands in the server's queue for one wait that another process is in the way of.
   *
   * @defaultValue 10
   */
  readonly maxConnections?: number;
  /**
   * Gives every lease a durable fencing token from a sequence, which is created in this schema when it is missing (and
   * the schema too). Without it there are no tokens, and nothing is written to the database.
   *
   * @defaultValue no tokens
   */
  readonly fencing?: { readonly schema: string };
}

/** Where the database is, and how the backend is set up. */
export type PostgresAdvisoryOptions = Place & AdvisorySettings;

export interface CheckedSettings {
  readonly sessionTimeoutMs: number;
  readonly maxConnections: number;
  /** As it stands in SQL. */
  readonly schema: string | undefined;
}

const known = ['pool', 'connectionString', 'sessionTimeoutMs', 'maxConnections', 'fencing'];

/** Every option checked, and the defaults in place. */
export function checkSettings(options: unknown): CheckedSettings {
  checkPlace(CALLER, options);
  const settings = options as PostgresAdvisoryOptions;
  for (const name of Object.keys(settings)) {
    if (!known.includes(name)) {
      throw badOption(`${CALLER}(): there is no option \`${name}\`; there are ${known.join(', ')}.`);
    }
  }
  const { fencing } = settings;
  return {
    // Below 900 ms a pause of a garbage collector could cost every lock.
    sessionTimeoutMs: whole(settings, 'sessionTimeoutMs', 15_000, 900, 600_000),
    maxConnections: whole(settings, 'maxConnections', 10, 1, 100),
    schema:
      fencing === undefined ? undefined : quoteSchema(CALLER, (fencing as { schema?: unknown })?.schema),
  };
}

function whole(
  settings: AdvisorySettings,
  name: 'sessionTimeoutMs' | 'maxConnections',
  fallback: number,
  least: number,
  most: number,
): number {
  const value: unknown = settings[name] ?? fallback;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw badOption(
    `${CALLER}(): \`${name}\` must be a whole number from ${least} to ${most}, not ${String(value)}.`,
  );
}
