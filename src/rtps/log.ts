/** Log function of this module, declared here so that the module depends on nothing outside its folder. */
export type Logger = (
  level: 'error' | 'warning' | 'notice' | 'info' | 'debug',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;
