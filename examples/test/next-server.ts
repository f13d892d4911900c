/** Calls the route handlers of the Next.js recipe as Next.js does: with a `Request`, and parameters as a promise. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { register } from '../src/frameworks/next/instrumentation.ts';
import { GET } from '../src/frameworks/next/ready-route.ts';
import { POST } from '../src/frameworks/next/sell-route.ts';

register();
const server = createServer(({ url = '', method = 'GET' }, response) => {
  const answered = handle(url, method).then(async (answer) => {
    response.writeHead(answer.status).end(await answer.text());
  });
  answered.catch((error: unknown) => response.destroy(error as Error));
});
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

function handle(url: string, method: string): Promise<Response> {
  if (method !== 'POST') return GET();
  const sku = url.split('/').at(-1) ?? '';
  return POST(new Request(`http://127.0.0.1${url}`, { method }), { params: Promise.resolve({ sku }) });
}
