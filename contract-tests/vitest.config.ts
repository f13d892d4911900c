import { defineConfig } from 'vitest/config';

// Conformance is judged by time too: two files and few cases at once, so that a slow machine is no failure.
export default defineConfig({
  test: { maxWorkers: 2, testTimeout: 90_000, hookTimeout: 60_000, maxConcurrency: 5 },
});
