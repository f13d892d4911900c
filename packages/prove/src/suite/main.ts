/** The harness of the conformance suite for a module that has none of its own. */
import { defineHarness } from '@locks/core/conformance';
import { backendOf } from '../worker/locks-of-module.ts';
import type { StoreModule } from '../worker/worker-commands.ts';
import { MODULE_VARIABLE } from './suite-module.ts';

export default defineHarness({
  module: import.meta.url,
  createBackend: () => backendOf(JSON.parse(process.env[MODULE_VARIABLE] ?? '') as StoreModule),
});
