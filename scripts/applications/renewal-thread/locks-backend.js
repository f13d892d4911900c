import { fileBackend } from '@locks/file';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

export default () => fileBackend(join(tmpdir(), `locks-renewal-thread-${process.pid}`));
