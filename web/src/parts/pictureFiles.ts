// Recognises picture files by type and name. The server or the module then recognises them by content.

/** Extensions of pictures that browsers do not count as `image/*`, or only on some systems. */
const rare = 'heic heif avif jxl cr2 cr3 crw nef arw dng orf rw2 raf pef srw mrw x3f'.split(' ');
const extensions = new RegExp(`\\.(jpe?g|png|gif|webp|bmp|tiff?|${rare.join('|')})$`, 'i');

/** The pictures that a file chooser offers. */
export const acceptPictures = ['image/*', ...rare.map((extension) => `.${extension}`)].join();

/** Reports whether a file is a picture: by its type, or by its name if browsers do not know the type. */
export function isPicture({ name, type }: { readonly name: string; readonly type: string }): boolean {
  return type.startsWith('image/') || extensions.test(name);
}

/** Returns the pictures among dropped, pasted or chosen files. Files without a type may be pictures. */
export function picturesIn(files: Iterable<File>): File[] {
  return [...files].filter((file) => file.type === '' || isPicture(file));
}
