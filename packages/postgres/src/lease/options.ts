import { badOption, checkConnectionString, checkPlace, type Place } from '../pool/place.ts';
import { quoteSchema } from '../pool/schema-name.ts';

export type PostgresLeaseOptions = Place & {
  /**
   * The schema that holds the tables and functions: letters, digits, `_` and `-`. All processes that share locks name the
   * same one.
   *
   * @defaultValue `'locks'`
   */
  readonly schema?: string;
  /**
   * How waiters learn of their turn.
   *
   * - `true`: one more connection to where the pool's go, opened by the first waiter, with `LISTEN`. If a pooler turns out
   *   to be in between, the backend says so in a process warning and polls.
   * - `{ connectionString }`: the same, on a direct connection to the server past the pooler.
   * - `false`: no such connection. While somebody waits, one statement every 100 ms asks for all waiters.
   *
   * @defaultValue true
   */
  readonly listen?: boolean | { readonly connectionString: string };
  /**
   * Whether the first call may create the schema, or bring it up to date. `false`: somebody else does, by
   * `migrateLeaseSchema` or `leaseSchemaSql`.
   *
   * @defaultValue true
   */
  readonly migrate?: boolean;
};

export interface CheckedOptions {
  readonly place: Place;
  /** Quoted. */
  readonly schema: string;
  readonly listen: boolean | { readonly connectionString: string };
  readonly migrate: boolean;
}

const caller = 'postgresLeaseBackend';
const known = ['pool', 'connectionString', 'schema', 'listen', 'migrate'];

export const defaultSchema = 'locks';

export function checkOptions(options: PostgresLeaseOptions): CheckedOptions {
  checkPlace(caller, options);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw badOption(`${caller}() has no option ${JSON.stringify(unknown)}; it has ${known.join(', ')}.`);
  const { schema = defaultSchema, listen = true, migrate = true } = options;
  if (typeof migrate !== 'boolean')
    throw badOption(`${caller}(): \`migrate\` must be true or false, not ${String(migrate)}.`);
  if (typeof listen === 'object' && listen !== null) checkConnectionString(caller, listen.connectionString);
  else if (typeof listen !== 'boolean')
    throw badOption(
      `${caller}(): \`listen\` must be true, false or { connectionString }, not ${String(listen)}.`,
    );
  return { place: options, schema: quoteSchema(caller, schema), listen, migrate };
}
