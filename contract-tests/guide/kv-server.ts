import { createServer, type Socket } from 'node:net';

interface Request {
  readonly id: number;
  readonly op: 'get' | 'put' | 'watch' | 'unwatch';
  readonly key: string;
  readonly value?: string | null; // put: null deletes
  readonly revision?: number; // put: only if the key still has it; 0: only if there is no key
}

/** The answer to the request with this id; a watch is answered at every change. */
export interface Reply {
  readonly id: number;
  readonly value: string | null;
  readonly revision: number; // of the key's last write, among the writes of all keys: 0 if there is no key
  readonly now: number; // the store's clock, in milliseconds
  readonly done: boolean; // put: whether it was written
}

/** Calls `hear` with every line that arrives. */
export function onLines(socket: Socket, hear: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(hear);
  });
}

export async function startServer(): Promise<{ port: number; stop(): Promise<void> }> {
  const entries = new Map<string, { value: string; revision: number }>();
  const watchers = new Map<string, Set<() => void>>();
  const sockets = new Set<Socket>();
  let latest = 0;

  function put({ key, value = null, revision = 0 }: Request): boolean {
    if ((entries.get(key)?.revision ?? 0) !== revision) return false;
    latest += 1;
    if (value === null) entries.delete(key);
    else entries.set(key, { value, revision: latest });
    return true;
  }

  const server = createServer((socket) => {
    const ends = new Map<number, () => void>(); // ends the watches of this connection
    sockets.add(socket);
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => {
      for (const end of ends.values()) end();
      sockets.delete(socket);
    });
    onLines(socket, (line) => {
      const request = JSON.parse(line) as Request;
      const { id, op, key } = request;
      const reply = (done: boolean): void => {
        const { value, revision } = entries.get(key) ?? { value: null, revision: 0 };
        const answer: Reply = { id, value, revision, now: performance.now(), done };
        if (socket.writable) socket.write(`${JSON.stringify(answer)}\n`);
      };
      if (op === 'watch') {
        const notify = () => reply(true);
        const all = watchers.get(key) ?? new Set();
        watchers.set(key, all.add(notify));
        ends.set(id, () => {
          all.delete(notify);
          if (all.size === 0) watchers.delete(key);
        });
      }
      if (op === 'unwatch') {
        ends.get(request.revision ?? 0)?.();
        ends.delete(request.revision ?? 0);
      }
      const done = op !== 'put' || put(request);
      reply(done);
      if (op === 'put' && done) for (const notify of watchers.get(key) ?? []) notify();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
