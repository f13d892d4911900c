import { defineConfig } from 'vitest/config';

// Files run one after another: conformance is judged by time too, and each file keeps both cores busy enough.
export default defineConfig({
  test: { fileParallelism: false, testTimeout: 90_000, hookTimeout: 60_000, maxConcurrency: 8 },
});
