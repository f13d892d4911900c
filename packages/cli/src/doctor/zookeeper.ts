import { connect } from 'node:net';
import { createLocks } from '@locks/core';
import { type NodeZooKeeperClient, zookeeperBackend } from '@locks/zookeeper';
import { hostsOf } from '../store-url.ts';
import { type ExaminedStore, trialFindings, type TrialReading } from './examination.ts';
import { type Diagnosis, error, type Finding, found, warning } from './finding.ts';
import { oldVersion } from './old-version.ts';

const LIMIT_MS = 3_000;
const DEFAULT_PORT = 2181;
/** The session time that the backend asks for by default, in milliseconds. */
const SESSION_MS = 10_000;
/** Minimum number of ticks in a session: the server notices the end of a session within a tick. */
const LEAST_TICKS = 4;

const READING: TrialReading = {
  failure({ codes }) {
    if (!codes.includes('NO_AUTH')) return undefined;
    return {
      id: 'zookeeper/acl',
      severity: 'error',
      toDo: 'grant create, delete and read on the tree of the locks; programs add credentials in `prepare`, which this command cannot',
    };
  },
};

/** A server's answers about itself. */
interface Server {
  readonly address: string;
  readonly version: string | undefined;
  /** The role: `standalone`, `leader`, `follower`, `observer`; `undefined` while the server serves nobody. */
  readonly mode: string | undefined;
  /** The server's tick in milliseconds; `undefined` where the command `conf` is not allowed. */
  readonly tickMs: number | undefined;
}

export async function examineZookeeper({ url, locks }: ExaminedStore): Promise<Diagnosis> {
  const servers = hostsOf(url);
  const addresses = [...new Set((servers.split('/')[0] ?? '').split(','))];
  const answers = await Promise.all(addresses.map(serverAt));
  const serving = answers.filter(({ mode }) => mode !== undefined);
  const sessionMs = await grantedSession(servers);
  const [first] = serving;
  const findings = [
    ...found(
      ...answers.map((server) => server.mode === undefined && downFinding(server.address)),
      serving.some(({ mode }) => mode === 'standalone') && standaloneFinding(),
      first?.version !== undefined && oldVersion('zookeeper', 'zookeeper', first.version),
      sessionFinding(sessionMs),
      tickFinding(sessionMs, first?.tickMs),
    ),
    ...(await trialFindings('zookeeper', locks, READING)),
  ];
  return { store: 'zookeeper', version: first?.version, findings };
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

/** The session time that the servers grant where the backend asks for its default. */
async function grantedSession(servers: string): Promise<number> {
  let client: NodeZooKeeperClient | undefined;
  const prepare = (opened: NodeZooKeeperClient): void => {
    client = opened;
  };
  const locks = createLocks(zookeeperBackend({ servers, sessionTimeoutMs: SESSION_MS, prepare }));
  try {
    await locks.ping({ waitMs: LIMIT_MS });
    return client?.getSessionTimeout() ?? Number.NaN;
  } finally {
    await locks.close();
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

function sessionFinding(grantedMs: number): Finding | undefined {
  if (grantedMs === SESSION_MS) return undefined;
  if (grantedMs < SESSION_MS)
    return error(
      'zookeeper/session-timeout',
      `sessions last ${grantedMs} ms where ${SESSION_MS} are asked for: a pause of a process that is longer loses its locks`,
      'raise maxSessionTimeout (20 ticks by default)',
    );
  return warning(
    'zookeeper/session-timeout',
    `sessions last ${grantedMs} ms where ${SESSION_MS} are asked for: the lock of a dead holder stays for so long`,
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
