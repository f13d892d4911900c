import { defineConfig } from 'vitest/config';

// Conformance is judged by time too: with two files at once both cores are busy, and not more than that.
export default defineConfig({
  test: { maxWorkers: 2, testTimeout: 90_000, hookTimeout: 60_000, maxConcurrency: 8 },
});
