import { connect } from 'node:net';
import { mustBe } from '@locks/core/backend';
import {
  type Diagnosis,
  error,
  failureOf,
  type Finding,
  found,
  layoutFinding,
  oldVersion,
  warning,
} from '@locks/core/doctor';
import { readSource, type ZooKeeperBackendOptions } from './node-source.ts';
import { DEFAULT_SESSION_MS } from './options.ts';
import { SERVER_VERSIONS } from './server-versions.ts';
import { type ZookeeperClientSource, ZookeeperSessions } from './zookeeper-sessions.ts';

const LIMIT_MS = 3_000;
const DEFAULT_PORT = 2181;
/** Minimum number of ticks in a session: the server notices the end of a session within a tick. */
const LEAST_TICKS = 4;

/** A server's answers about itself. */
interface Server {
  readonly address: string;
  readonly version: string | undefined;
  /** The role: `standalone`, `leader`, `follower`, `observer`; `undefined` while the server serves nobody. */
  readonly mode: string | undefined;
  /** The server's tick in milliseconds; `undefined` where the command `conf` is not allowed. */
  readonly tickMs: number | undefined;
}

// setup: import { examineZookeeper } from '@locks/zookeeper/doctor';
/**
 * Examines the servers of the locks, each by itself, and the session that they grant. No node is made.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; a `ZooKeeperError` where no session is granted
 * @example
 * ```ts
 * const { findings } = await examineZookeeper('zk1:2181,zk2:2181,zk3:2181');
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineZookeeper(
  servers: string,
  options: ZooKeeperBackendOptions = {},
): Promise<Diagnosis> {
  const caller = 'examineZookeeper()';
  if (typeof servers !== 'string')
    throw mustBe(
      `${caller}: the first argument`,
      'the connect string of the servers, which a client does not tell',
      servers,
    );
  const { source, connectTimeoutMs } = readSource(caller, servers, options);
  const addresses = [...new Set((servers.split('/')[0] ?? '').split(','))];
  const answers = await Promise.all(addresses.map(serverAt));
  const serving = answers.filter(({ mode }) => mode !== undefined);
  const sessionMs = await grantedSession(source, connectTimeoutMs);
  const [first] = serving;
  const findings = found(
    ...answers.map((server) => server.mode === undefined && downFinding(server.address)),
    serving.some(({ mode }) => mode === 'standalone') && standaloneFinding(),
    first?.version !== undefined && oldVersion('zookeeper', first.version, SERVER_VERSIONS.zookeeper),
    sessionFinding(sessionMs, options.sessionTimeoutMs ?? DEFAULT_SESSION_MS),
    tickFinding(sessionMs, first?.tickMs),
  );
  return { store: 'zookeeper', version: first?.version, findings, explain };
}

function explain(failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  if (!codes.includes('NO_AUTH')) return layoutFinding('zookeeper', failure);
  return error(
    'zookeeper/acl',
    message,
    'grant create, delete and read on the tree of the locks; programs add credentials in `setUpClient`, which `locks doctor` cannot',
  );
}

async function serverAt(address: string): Promise<Server> {
  const [status, configuration] = await Promise.all(
    ['srvr', 'conf'].map((word) => answerTo(word, address).catch(() => '')),
  );
  const tick = fieldOf(configuration, /^tickTime=(\d+)/m);
  return {
    address,
    version: fieldOf(status, /^Zookeeper version: (\d+(?:\.\d+)*)/m),
    mode: fieldOf(status, /^Mode: (\S+)/m),
    tickMs: tick === undefined ? undefined : Number(tick),
  };
}

function fieldOf(report = '', pattern: RegExp): string | undefined {
  return pattern.exec(report)?.[1];
}

/** Sends a four-letter command, and gives the answer. */
function answerTo(word: string, address: string): Promise<string> {
  const [, host = address, port] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ host: host.replace(/^\[|\]$/g, ''), port: Number(port ?? DEFAULT_PORT) });
    socket.setTimeout(LIMIT_MS, () => socket.destroy(new Error('no answer')));
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => (answer += String(chunk)));
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

/** The session time that the servers grant, in milliseconds. */
async function grantedSession(source: ZookeeperClientSource, connectTimeoutMs: number): Promise<number> {
  const sessions = new ZookeeperSessions(source, connectTimeoutMs);
  try {
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    return (await sessions.current(call)).timeoutMs;
  } finally {
    await sessions.close();
  }
}

function downFinding(address: string): Finding {
  return warning(
    'zookeeper/member-down',
    `the server at ${address} does not answer from here, or serves nobody`,
    'bring it back: with a majority away nothing is granted or released, and sessions end',
  );
}

function standaloneFinding(): Finding {
  return warning(
    'zookeeper/standalone',
    'the server runs alone: while it is away nothing is granted, and its disk is the only copy',
    'run an ensemble of three or five servers',
  );
}

function sessionFinding(grantedMs: number, askedMs: number): Finding | undefined {
  if (grantedMs === askedMs) return undefined;
  if (grantedMs < askedMs)
    return error(
      'zookeeper/session-timeout',
      `sessions last ${grantedMs} ms where ${askedMs} are asked for: a pause of a process that is longer loses its locks`,
      'raise maxSessionTimeout (20 ticks by default)',
    );
  return warning(
    'zookeeper/session-timeout',
    `sessions last ${grantedMs} ms where ${askedMs} are asked for: the lock of a dead holder stays for so long`,
    'lower minSessionTimeout (two ticks by default), or tickTime',
  );
}

function tickFinding(grantedMs: number, tickMs: number | undefined): Finding | undefined {
  if (tickMs === undefined || tickMs * LEAST_TICKS <= grantedMs) return undefined;
  return warning(
    'zookeeper/tick',
    `a tick lasts ${tickMs} ms, and the end of a session of ${grantedMs} ms is noticed up to a tick late`,
    'lower tickTime: 2000 is the default',
  );
}
