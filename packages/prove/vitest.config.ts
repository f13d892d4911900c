import { defineConfig } from 'vitest/config';

// On a machine that may be busy with other suites.
export default defineConfig({ test: { testTimeout: 120_000, hookTimeout: 120_000 } });
