export {
  LOCKS_MEMORY,
  LocksTestingModule,
  type LocksTestingOptions,
  memorySlots,
} from './locks-testing-module.ts';
export { memoryTestBackend, type MemoryTestBackend } from '@locks/memory';
