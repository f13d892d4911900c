import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { KubeConfig } from '@kubernetes/client-node';
import { expect, it, onTestFinished } from 'vitest';
import { examineKubernetes } from '../src/doctor.ts';

interface Review {
  readonly spec: { readonly resourceAttributes: { readonly verb: string; readonly namespace: string } };
}

/** An API server that answers only what it is asked about itself and about rights; `forbidden`: nobody may ask about rights. */
async function configFor(allowed: readonly string[] | 'forbidden'): Promise<KubeConfig> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    if (request.url === '/version') return response.end(JSON.stringify({ gitVersion: 'v1.34.2' }));
    const { spec } = (await json(request)) as Review;
    const { verb, namespace } = spec.resourceAttributes;
    response.statusCode = allowed === 'forbidden' ? 403 : 201;
    const status = { allowed: namespace === 'apps' && allowed.includes(verb) };
    return response.end(JSON.stringify({ status }));
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'c', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'u' },
  );
  return config;
}

const ALL = ['get', 'create', 'update', 'delete', 'list', 'watch'];
const findingsFor = async (allowed: readonly string[] | 'forbidden'): Promise<Record<string, string>> => {
  const kubeConfig = await configFor(allowed);
  const { store, version, findings } = await examineKubernetes(kubeConfig, { namespace: 'apps' });
  expect({ store, version }).toEqual({ store: 'kubernetes', version: '1.34.2' });
  return Object.fromEntries(findings.map(({ id, severity }) => [id, severity]));
};

it('finds nothing where the user may do all that locks need, and where nobody may ask', async () => {
  expect(await findingsFor(ALL)).toEqual({});
  expect(await findingsFor('forbidden')).toEqual({});
});

it('names each right that is missing: an error where no lock works without it', async () => {
  expect(await findingsFor(['get', 'create'])).toEqual({
    'kubernetes/update': 'error',
    'kubernetes/delete': 'warning',
    'kubernetes/list': 'warning',
    'kubernetes/watch': 'warning',
  });
});
