import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { startProcess } from '@locks/core/conformance/process';
import { startProxy } from '@locks/core/conformance/proxy';
import { expect, it } from 'vitest';
import { selfSigned } from '../../postgres/test/self-signed.ts';
import type { Connecting } from './fixtures/connecting.ts';

it('every form of connect() goes through the proxy, and what is written at once arrives', async () => {
  const server = createServer((socket) => socket.pipe(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await using proxy = await startProxy({ host: '127.0.0.1', port });
  await using child = await startProcess<Connecting>(new URL('fixtures/connecting.ts', import.meta.url));
  await child.call.redirect(port, proxy.port);

  for (const form of ['port', 'port, host', 'text', 'options', 'callback'] as const) {
    expect(await child.call.echo(form, port)).toBe(form);
  }
  expect(await child.call.asked()).toEqual(['localhost', '127.0.0.1', 'localhost', 'localhost', 'localhost']);

  // Nothing arrives past the proxy.
  proxy.refuse();
  proxy.cut();
  await expect(child.call.echo('port', port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  server.close();
});

it('TLS goes through the proxy, checks the certificate, and names the server that was meant', async () => {
  const { key, certificate } = selfSigned;
  const server = createHttpsServer({ key, cert: certificate }, ({ socket }, response) => {
    response.end(String((socket as TLSSocket & { servername?: string }).servername));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await using proxy = await startProxy({ host: '127.0.0.1', port });
  await using child = await startProcess<Connecting>(new URL('fixtures/connecting.ts', import.meta.url));
  await child.call.redirect(port, proxy.port);
  expect(await child.call.fetchOverTls(port, certificate)).toBe('localhost');
  proxy.refuse();
  await expect(child.call.fetchOverTls(port, certificate)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  server.close();
});
