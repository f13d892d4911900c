/** The environment variable with the module that the suite examines, as JSON: its child processes read it too. */
export const MODULE_VARIABLE = 'LOCKS_PROVE_MODULE';
