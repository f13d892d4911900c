export { memoryBackend, type MemoryBackend, type MemoryCapabilities } from './memory-backend.ts';
export { MemoryStore } from './memory-store.ts';
