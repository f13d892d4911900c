import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import type { WatchedLocks } from './watched-locks.ts';

export interface BoardServerOptions {
  readonly watched: WatchedLocks;
  readonly host: string;
  /** The TCP port; 0 chooses a free one. */
  readonly port: number;
  readonly everyMs: number;
  readonly mayRelease: boolean;
  /** The folder of the page's files. */
  readonly page: URL;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);
const MOST_BODY_BYTES = 10_000;

const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/board.js': ['board.js', 'text/javascript; charset=utf-8'],
  '/board.css': ['board.css', 'text/css; charset=utf-8'],
};

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** The refusal of a request, with its HTTP status. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Serves the page and its state, and ends holds on request. */
export class BoardServer implements AsyncDisposable {
  readonly #options: BoardServerOptions;
  readonly #server: Server;
  /** The secret of a request; `undefined`: everybody who can reach the loopback of this machine may look. */
  readonly #token: string | undefined;

  constructor(options: BoardServerOptions) {
    this.#options = options;
    const needsToken = options.mayRelease || !LOOPBACK.has(options.host);
    this.#token = needsToken ? randomBytes(18).toString('base64url') : undefined;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Starts to listen, and gives the address for the user. */
  async listen(): Promise<string> {
    const { host, port } = this.#options;
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    const name = isIPv6(host) ? `[${host}]` : host;
    // The token comes after #, so that no server, log or other page gets it.
    return `http://${name}:${this.#port}/${this.#token === undefined ? '' : `#${this.#token}`}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#refuseForeign(request);
      await this.#route(request, response);
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 502;
      send(response, status, 'application/json', JSON.stringify({ error: (error as Error).message }));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path } = new URL(request.url ?? '/', 'http://board');
    const file = FILES[path];
    const method = path === '/release' ? 'POST' : 'GET';
    if (file === undefined && path !== '/state' && path !== '/release')
      throw new Refusal(404, 'no such page');
    if (request.method !== method) throw new Refusal(405, `${path} takes ${method}`);
    if (file !== undefined) {
      const [name, type] = file;
      send(response, 200, type, readFileSync(new URL(name, this.#options.page)));
      return;
    }
    this.#checkToken(request);
    const { watched, everyMs, mayRelease } = this.#options;
    const answer =
      path === '/state' ? { ...watched.state, everyMs, mayRelease } : await this.#release(request);
    send(response, 200, 'application/json', JSON.stringify(answer));
  }

  /** Refuses requests by pages of other sites, also of one whose name resolves to this address (DNS rebinding). */
  #refuseForeign({ headers }: IncomingMessage): void {
    const host = headers.host ?? '';
    const own = [...LOOPBACK].map((name) => `${isIPv6(name) ? `[${name}]` : name}:${this.#port}`);
    if (LOOPBACK.has(this.#options.host) && !own.includes(host))
      throw new Refusal(403, 'this address serves the loopback of its machine only');
    const { origin } = headers;
    const site = headers['sec-fetch-site'];
    const isForeign = origin !== undefined && origin !== `http://${host}`;
    // Links to the page are allowed from any site.
    const isLink = headers['sec-fetch-mode'] === 'navigate';
    if (isForeign || (site !== undefined && site !== 'same-origin' && site !== 'none' && !isLink))
      throw new Refusal(403, 'a request of another site');
  }

  #checkToken({ headers }: IncomingMessage): void {
    if (this.#token === undefined) return;
    const given = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    if (!timingSafeEqual(digest(given), digest(this.#token)))
      throw new Refusal(401, 'open the address that `locks board` printed, with all that stands behind #');
  }

  async #release(request: IncomingMessage): Promise<object> {
    if (!this.#options.mayRelease) throw new Refusal(403, 'read-only: start `locks board --allow-release`');
    if (request.headers['content-type'] !== 'application/json') throw new Refusal(415, 'JSON is expected');
    const { name, acquisitionId } = await bodyOf(request);
    if (typeof name !== 'string' || typeof acquisitionId !== 'string')
      throw new Refusal(400, '{ "name", "acquisitionId" } are expected');
    return { released: await this.#options.watched.release(name, acquisitionId) };
  }
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BODY_BYTES) throw new Refusal(413, 'too much');
    parts.push(part);
  }
  try {
    return Object(JSON.parse(Buffer.concat(parts).toString())) as Record<string, unknown>;
  } catch {
    throw new Refusal(400, 'no JSON');
  }
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { ...HEADERS, 'content-type': type });
  response.end(body);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
