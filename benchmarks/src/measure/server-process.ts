// What a server spends, as Linux tells of its process, its threads and its child processes. PostgreSQL has a child for each connection.
import { readdirSync, readFileSync } from 'node:fs';

/** Begins to count; the returned function gives the processor time since then, in microseconds. */
export function watchProcessor(pid: number): () => number {
  const before = nanosecondsByThread(pid);
  return () => {
    let nanoseconds = 0;
    for (const [thread, now] of nanosecondsByThread(pid)) nanoseconds += now - (before.get(thread) ?? 0);
    return nanoseconds / 1_000;
  };
}

/** Bytes of memory in use; what processes share is counted once. */
export function memoryOf(pid: number): number {
  const kilobytes = processesOf(pid).map((each) =>
    Number(/^Pss:\s+(\d+)/m.exec(readOrNothing(`/proc/${each}/smaps_rollup`))?.[1] ?? 0),
  );
  return 1_024 * kilobytes.reduce((sum, each) => sum + each, 0);
}

const ESTABLISHED = '01';

/** How many clients are connected to a port of this machine. */
export function connectionsOf(port: number): number {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = ['tcp', 'tcp6'].flatMap((kind) => readOrNothing(`/proc/net/${kind}`).trim().split('\n'));
  return sockets.filter((line) => {
    const [, local, , state] = line.trim().split(/\s+/);
    return local?.endsWith(ending) && state === ESTABLISHED;
  }).length;
}

function nanosecondsByThread(pid: number): ReadonlyMap<string, number> {
  const threads = processesOf(pid).flatMap((each) =>
    threadsOf(each).map((thread) => `/proc/${each}/task/${thread}`),
  );
  return new Map(threads.map((path) => [path, Number(readOrNothing(`${path}/schedstat`).split(' ')[0])]));
}

function processesOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) =>
    readOrNothing(`/proc/${pid}/task/${thread}/children`).trim().split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(processesOf)];
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** A process or thread may end between two looks. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
