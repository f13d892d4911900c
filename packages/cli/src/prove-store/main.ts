/** The module that each worker of `locks prove` loads: it opens the store of a URL, as every command does. */
import type { LockBackend } from '@locks/core/backend';
import { type NamedStore, openBackend } from '../open-store.ts';

interface OpenedForProof {
  readonly backend: LockBackend;
  readonly close?: () => unknown;
}

/** @throws UsageError; LockError */
export default async function openForProof({ url, prefix }: NamedStore): Promise<OpenedForProof> {
  const { backend, closeClient } = await openBackend(url, prefix);
  return { backend, ...(closeClient !== undefined && { close: closeClient }) };
}
