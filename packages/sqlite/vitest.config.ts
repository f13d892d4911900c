import { defineConfig } from 'vitest/config';

// Most of these tests wait for a process that stands still or for a lease to end: side by side they cost little.
export default defineConfig({ test: { maxWorkers: 4, testTimeout: 60_000, hookTimeout: 60_000 } });
