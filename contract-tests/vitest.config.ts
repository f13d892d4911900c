import { defineConfig } from 'vitest/config';

// Conformance is judged by time too: no more than two files at once.
export default defineConfig({
  test: { maxWorkers: 2, testTimeout: 90_000, hookTimeout: 60_000, maxConcurrency: 8 },
});
