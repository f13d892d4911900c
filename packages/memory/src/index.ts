export { memoryBackend, type MemoryBackend, type MemoryCapabilities } from './memory-backend.ts';
export { memoryTestBackend, type MemoryTestBackend } from './test-backend.ts';
export { MemoryStore } from './memory-store.ts';
