import { CoordinationV1Api, KubeConfig } from '@kubernetes/client-node';
import { LockError } from '@locks/core';
import { expect, it } from 'vitest';
import { kubernetesBackend, type KubernetesBackendOptions } from '../src/index.ts';
import { checkOptions } from '../src/options.ts';
import { kubeConfig } from './kube-config.ts';

const access = { url: 'https://127.0.0.1:1', certificate: '', token: 'x' };
const loaded = kubeConfig(access);

it.each<[string, unknown, RegExp]>([
  ['no config', {}, /kubeConfig must be a KubeConfig.*undefined/],
  ['null', { kubeConfig: null }, /kubeConfig must be a KubeConfig.*null/],
  ['a client', { kubeConfig: loaded.makeApiClient(CoordinationV1Api) }, /kubeConfig must be a KubeConfig/],
  ['a config that was not loaded', { kubeConfig: new KubeConfig() }, /Load it first/],
  ['a path', { kubeConfig: '~/.kube/config' }, /kubeConfig must be a KubeConfig/],
  ['another name', { kubeconfig: loaded }, /kubeconfig.*kubeConfig/],
  ['a bad namespace', { kubeConfig: loaded, namespace: 'Not A Name' }, /namespace must be/],
  ['null as the namespace', { kubeConfig: loaded, namespace: null }, /namespace must be/],
  ['a long prefix', { kubeConfig: loaded, prefix: 'p'.repeat(129) }, /prefix must be/],
])('refuses %s', (_, options, message) => {
  const call = () => kubernetesBackend(options as KubernetesBackendOptions);
  expect(call).toThrow(LockError);
  expect(call).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT', message: expect.stringMatching(message) }),
  );
});

it('takes the namespace of the context, unless another is given', () => {
  expect(checkOptions({ kubeConfig: loaded }).namespace).toBe('default');
  const inShop = kubeConfig(access, 'shop');
  expect(checkOptions({ kubeConfig: inShop }).namespace).toBe('shop');
  expect(checkOptions({ kubeConfig: inShop, namespace: 'other' }).namespace).toBe('other');
});
