import { CoordinationV1Api, KubeConfig } from '@kubernetes/client-node';
import { LockError } from '@locks/core';
import { expect, it } from 'vitest';
import { kubernetesBackend, type KubernetesBackendOptions } from '../src/index.ts';
import { checkOptions } from '../src/options.ts';
import { kubeConfig } from './kube-config.ts';

const access = { url: 'https://127.0.0.1:1', certificate: '', token: 'x' };
const loaded = kubeConfig(access);

it.each<[string, unknown, unknown, RegExp]>([
  ['no config', undefined, undefined, /kubeConfig must be a KubeConfig.*undefined/],
  ['null', null, undefined, /kubeConfig must be a KubeConfig.*null/],
  [
    'options first',
    { namespace: 'a' },
    undefined,
    /kubeConfig must be a KubeConfig.*kubernetesBackend\(kubeConfig, { … }\)/,
  ],
  ['a client', loaded.makeApiClient(CoordinationV1Api), {}, /kubeConfig must be a KubeConfig/],
  ['a config that was not loaded', new KubeConfig(), {}, /Load it first/],
  ['a path', '~/.kube/config', {}, /kubeConfig must be a KubeConfig/],
  ['a config among the options', loaded, { kubeConfig: loaded }, /kubeConfig.*the first argument/],
  ['a bad namespace', loaded, { namespace: 'Not A Name' }, /namespace must be/],
  ['null as the namespace', loaded, { namespace: null }, /namespace must be/],
  ['a long prefix', loaded, { prefix: 'p'.repeat(129) }, /prefix must be/],
])('refuses %s', (_, config, options, message) => {
  const call = () => kubernetesBackend(config as KubeConfig, options as KubernetesBackendOptions);
  expect(call).toThrow(LockError);
  expect(call).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT', message: expect.stringMatching(message) }),
  );
});

it('takes the namespace of the context, unless another is given', () => {
  expect(checkOptions(loaded, {}).namespace).toBe('default');
  const inShop = kubeConfig(access, 'shop');
  expect(checkOptions(inShop, {}).namespace).toBe('shop');
  expect(checkOptions(inShop, { namespace: 'other' }).namespace).toBe('other');
});
