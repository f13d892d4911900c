import { defineConfig } from 'vitest/config';

// Real servers on a machine that may be busy with other suites. The tests wait more than they work: all files at once.
export default defineConfig({ test: { testTimeout: 60_000, hookTimeout: 60_000, maxWorkers: 6 } });
