import { invalidArgument, mustBe, optional, type OptionReader, type OptionTable } from '@locks/core/backend';

/** The REST address of a database, and its token. */
export interface UpstashConnection {
  /** The REST address: `https://….upstash.io`. */
  readonly url: string;
  /** The token, which may write. */
  readonly token: string;
  /** What sends the requests. @defaultValue the global `fetch` */
  readonly fetch?: typeof globalThis.fetch;
}

export interface CheckedConnection {
  readonly url: string;
  readonly token: string;
  readonly fetch: typeof globalThis.fetch;
}

const readUrl: OptionReader<string> = (value, what) => {
  // The value is not shown: it may be the token, or have a password.
  if (typeof value !== 'string' || !URL.canParse(value)) {
    throw invalidArgument(`${what} must be the REST address of the database, as https://….upstash.io`);
  }
  const { protocol, username, password, search, hash } = new URL(value);
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw invalidArgument(
      `${what} is an address of the protocol ${protocol} pass the REST address of the database, which begins with https://`,
    );
  }
  // Every message about a request would repeat them.
  if (username + password + search + hash !== '') {
    throw invalidArgument(
      `${what} has a user, a password or a query: pass the bare REST address of the database, and its REST token as token`,
    );
  }
  return value.replace(/\/+$/, '');
};

const readToken: OptionReader<string> = (value, what) => {
  // The value is not shown: it may be a token after all.
  if (typeof value !== 'string' || value.trim() === '') {
    throw invalidArgument(`${what} must be the REST token of the database, a non-empty string`);
  }
  return value;
};

const readFetch: OptionReader<typeof globalThis.fetch> = (value, what) => {
  if (typeof value !== 'function') throw mustBe(what, 'a function like the global fetch', value);
  return value as typeof globalThis.fetch;
};

/** Calls the global function as such: Cloudflare refuses it as a method of another object. */
const globalFetch: typeof globalThis.fetch = (...args) => globalThis.fetch(...args);

export const CONNECTION_TABLE = {
  url: readUrl,
  token: readToken,
  fetch: optional(readFetch, globalFetch),
} satisfies OptionTable<UpstashConnection>;

/** Refuses a client in place of the options, with a sentence that says what to pass. */
export function refuseClients(given: unknown): void {
  if (given instanceof Promise) throw invalidArgument('the options are a promise: await it first');
  if (typeof given !== 'object' || given === null) return;
  const shape = given as {
    readonly pipeline?: unknown;
    readonly evalsha?: unknown;
    readonly customCommand?: unknown;
  };
  if ([shape.pipeline, shape.evalsha, shape.customCommand].some((member) => typeof member === 'function')) {
    throw invalidArgument(
      'a client was passed: pass { url, token } of the database, for example { url: UPSTASH_REDIS_REST_URL, token: UPSTASH_REDIS_REST_TOKEN }',
    );
  }
}
