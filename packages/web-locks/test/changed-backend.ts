import type { BackendCapabilities } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { type MemoryStore, memoryBackend } from '@locks/memory';

/** The memory backend without something, or with something else. */
export function changed(
  store: MemoryStore,
  capabilities: Partial<BackendCapabilities>,
  methods: Partial<LockBackend> = {},
): LockBackend {
  const inner: LockBackend = memoryBackend(store);
  return new Proxy(inner, {
    get(_, key) {
      if (key === 'capabilities') return { ...inner.capabilities, ...capabilities };
      if (Object.hasOwn(methods, key)) return methods[key as keyof LockBackend];
      const member: unknown = Reflect.get(inner, key);
      return typeof member === 'function' ? (member.bind(inner) as unknown) : member;
    },
  });
}
