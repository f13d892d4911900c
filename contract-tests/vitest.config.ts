import { defineConfig } from 'vitest/config';

// Conformance is judged by time too: few cases at once. They wait most of the time, and a file ends with its longest
// ones: so three files share two cores.
export default defineConfig({
  test: { maxWorkers: 3, testTimeout: 90_000, hookTimeout: 60_000, maxConcurrency: 6 },
});
