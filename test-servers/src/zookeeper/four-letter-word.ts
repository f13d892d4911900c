import { connect } from 'node:net';

/** Sends a four letter word to a ZooKeeper server and gives its answer. */
export async function fourLetterWord(
  { host, port }: { readonly host: string; readonly port: number },
  word: string,
  timeoutMs = 2_000,
): Promise<string> {
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host, port });
    const timer = setTimeout(() => {
      socket.destroy(new Error(`No answer to ${word} from port ${port} within ${timeoutMs} ms.`));
    }, timeoutMs);
    socket.on('connect', () => socket.write(word));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString());
    });
  });
}

/** `Mode: leader` and the like as an object. */
export function parseReport(report: string): Record<string, string> {
  const pairs = report.split('\n').flatMap((line) => {
    const [, key, value] = /^([^:\t]+?)[:\t]\s*(.*)$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value] as const];
  });
  return Object.fromEntries(pairs);
}
