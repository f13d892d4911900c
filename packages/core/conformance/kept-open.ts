import type { Socket } from 'node:net';

/** A process with nothing left to do ends at once; one that still runs after this time does not end by itself. */
const END_MS = 4_000;

/** What keeps this process alive, in words: `2 × TCPSocketWrap, to 127.0.0.1:6379`. */
export function keptOpen(): string {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].map(([kind, count]) => `${count} × ${kind}`).join(', ');
  const peers = [
    ...new Set(openSockets().map(({ remoteAddress, remotePort }) => `${remoteAddress}:${remotePort}`)),
  ];
  return peers.length === 0 ? kinds : `${kinds}, to ${peers.join(' and ')}`;
}

/** To be called at the end of a run: writes to stderr what keeps the process open, if it does not end by itself. */
export function warnIfKeptOpen(): void {
  const timer = setTimeout(() => {
    console.error(
      `The run of the suite is over, and the process does not end: it is kept open by ${keptOpen()}. ` +
        'A backend closes in close() everything that it opened, also where a call comes later; teardown() stops everything that setup() started.',
    );
  }, END_MS);
  timer.unref();
}

/** The open sockets of this process. Node lists open handles only under an internal name. */
function openSockets(): Socket[] {
  const { _getActiveHandles: list } = process as unknown as { _getActiveHandles?: () => readonly object[] };
  const handles = (list?.call(process) ?? []) as readonly Partial<Socket>[];
  return handles.filter((handle): handle is Socket => typeof handle.remotePort === 'number');
}
