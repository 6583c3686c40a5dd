/** The views found by the build, in the order of the navigation. */
declare module 'views' {
  import type { View } from './views/view.ts';
  export const views: readonly View[];
}

declare module '*.css';
