import { defineConfig } from 'vitest/config';

// The demos start servers and processes: three at a time, on a machine that may be small.
export default defineConfig({ test: { testTimeout: 60_000, maxConcurrency: 3 } });
