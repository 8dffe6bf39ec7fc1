/* What build/pegfs-static carries: lib/pegfs as an archive (core/running/libdir.c unpacks it). */
	.section .rodata
	.balign 16
	.globl libdir_archive, libdir_archive_end
libdir_archive:
	.incbin LIBDIR_ARCHIVE
libdir_archive_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
