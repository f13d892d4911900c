import type { BaseLease } from '@locks/core';

/** Releases a lease whose loss changes no outcome any more. Core's events report a loss, and a release without an answer. */
export async function releaseQuietly(lease: BaseLease): Promise<void> {
  await lease.release().catch(() => {});
}
